#!/usr/bin/env bash
# Bundle the page of `rllm view` from packages/rllm-agents/viewer into the package's assets.
#
#   scripts/build_viewer.sh        # needs node >= 18 and npm; the versions are in package.json
#
# The head of app.js names the sources that it was made of; a test compares them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources=packages/rllm-agents/viewer
assets=packages/rllm-agents/src/rllm_agents/viewer/assets
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cp -r "$sources/package.json" "$sources/src" "$work/"
(cd "$work" && npm install --silent --no-package-lock --no-audit --no-fund)
digest="$(cd "$sources" && LC_ALL=C find package.json src -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -d' ' -f1)"

mkdir -p "$assets"
# uPlot's own style comes before ours.
cat "$work/node_modules/uplot/dist/uPlot.min.css" "$work/src/style.css" > "$work/src/app.css"
esbuild=("$work/node_modules/.bin/esbuild" --minify --charset=ascii --log-level=warning --legal-comments=none)
"${esbuild[@]}" "$work/src/main.jsx" --bundle --target=es2022 --jsx=automatic \
  --jsx-import-source=preact --banner:js="/* sources $digest; licences: LICENSES.txt */" \
  --outfile="$assets/app.js"
"${esbuild[@]}" "$work/src/app.css" --outfile="$assets/app.css"
cp "$sources/src/index.html" "$assets/index.html"
for library in preact uplot; do
  printf '%s\n\n' "$library"
  cat "$work/node_modules/$library/LICENSE"
  printf '\n'
done > "$assets/LICENSES.txt"
wc -c "$assets"/*
