/* The C functions of XGBoost by which its JVM package (predict) and its R package (config) read a
 * model and predict, called from Java. */
#include <jni.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef void *Handle;
extern const char *XGBGetLastError(void);
extern int XGBoosterCreate(const Handle *, uint64_t, Handle *);
extern int XGBoosterLoadModel(Handle, const char *);
extern int XGBoosterFree(Handle);
extern int XGBoosterGetAttr(Handle, const char *, const char **, int *);
extern int XGBoosterPredict(Handle, Handle, int, unsigned, int, uint64_t *, const float **);
extern int XGBoosterPredictFromDMatrix(Handle, Handle, const char *, const uint64_t **, uint64_t *,
                                       const float **);
extern int XGDMatrixCreateFromMat(const float *, uint64_t, uint64_t, float, Handle *);
extern int XGDMatrixFree(Handle);

static int Failed(JNIEnv *env, int code) {
  if (code != 0) {
    jclass error = (*env)->FindClass(env, "java/lang/RuntimeException");
    (*env)->ThrowNew(env, error, XGBGetLastError());
  }
  return code;
}

static Handle Load(JNIEnv *env, jstring model) {
  Handle booster = NULL;
  const char *path = (*env)->GetStringUTFChars(env, model, NULL);
  if (Failed(env, XGBoosterCreate(NULL, 0, &booster)) == 0) {
    Failed(env, XGBoosterLoadModel(booster, path));
  }
  (*env)->ReleaseStringUTFChars(env, model, path);
  return booster;
}

JNIEXPORT jfloatArray JNICALL Java_Predict_predict(JNIEnv *env, jclass self, jstring model,
                                                   jfloatArray rows, jint width,
                                                   jboolean via_config) {
  (void)self;
  Handle booster = Load(env, model), matrix = NULL;
  if ((*env)->ExceptionCheck(env)) {
    return NULL;
  }
  jfloat *cells = (*env)->GetFloatArrayElements(env, rows, NULL);
  uint64_t n = (uint64_t)(*env)->GetArrayLength(env, rows) / (uint64_t)width, size = 0;
  const float *found = NULL;
  int code = XGDMatrixCreateFromMat(cells, n, (uint64_t)width, NAN, &matrix);
  if (code == 0 && via_config) {
    const uint64_t *shape = NULL;
    uint64_t dims = 0;
    code = XGBoosterPredictFromDMatrix(booster, matrix,
                                       "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, "
                                       "\"iteration_end\": 0, \"strict_shape\": false}",
                                       &shape, &dims, &found);
    size = code == 0 ? 1 : 0;
    for (uint64_t i = 0; i < dims; ++i) {
      size *= shape[i];
    }
  } else if (code == 0) {
    code = XGBoosterPredict(booster, matrix, 0, 0, 0, &size, &found);
  }
  jfloatArray out = NULL;
  if (Failed(env, code) == 0) {
    out = (*env)->NewFloatArray(env, (jsize)size);
    (*env)->SetFloatArrayRegion(env, out, 0, (jsize)size, found);
  }
  (*env)->ReleaseFloatArrayElements(env, rows, cells, JNI_ABORT);
  XGDMatrixFree(matrix);
  XGBoosterFree(booster);
  return out;
}

JNIEXPORT jstring JNICALL Java_Predict_attribute(JNIEnv *env, jclass self, jstring model,
                                                 jstring name) {
  (void)self;
  Handle booster = Load(env, model);
  if ((*env)->ExceptionCheck(env)) {
    return NULL;
  }
  const char *key = (*env)->GetStringUTFChars(env, name, NULL), *found = NULL;
  int present = 0;
  Failed(env, XGBoosterGetAttr(booster, key, &found, &present));
  jstring out = (*env)->NewStringUTF(env, present ? found : "");
  (*env)->ReleaseStringUTFChars(env, name, key);
  XGBoosterFree(booster);
  return out;
}
