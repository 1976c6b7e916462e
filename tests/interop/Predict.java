/** Loads a model with a stock libxgboost in a Java process and prints what it predicts. */
public final class Predict {
  private static native float[] predict(String model, float[] rows, int width, boolean viaConfig);

  private static native String attribute(String model, String name);

  public static void main(String[] words) {
    // The library first, by its path: the name that the bridge asks for need not be that of a file.
    for (String path : words[0].split(java.io.File.pathSeparator)) {
      System.load(path);
    }
    if (words[1].equals("attribute")) {
      System.out.println(attribute(words[2], words[3]));
      return;
    }
    boolean viaConfig = words[1].equals("config");
    int width = Integer.parseInt(words[3]);
    float[] rows = new float[words.length - 4];
    for (int i = 0; i < rows.length; ++i) {
      rows[i] = Float.parseFloat(words[4 + i]);
    }
    StringBuilder out = new StringBuilder();
    for (float value : predict(words[2], rows, width, viaConfig)) {
      out.append(Float.toString(value)).append(' ');
    }
    System.out.println(out.toString().trim());
  }
}
