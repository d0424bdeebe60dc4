#!/usr/bin/env bash
# Bundle the pages of `rllm view` and `rllm bench site` from packages/rllm-agents/viewer into the
# package's assets.
#
#   scripts/build_viewer.sh        # needs node >= 18 and npm; the versions are in package.json
#
# The head of each script names the sources that it was made of; tests compare them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources=packages/rllm-agents/viewer
package=packages/rllm-agents/src/rllm_agents
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cp -r "$sources/package.json" "$sources/src" "$work/"
(cd "$work" && npm install --silent --no-package-lock --no-audit --no-fund)
digest="$(cd "$sources" && LC_ALL=C find package.json src -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -d' ' -f1)"

esbuild=("$work/node_modules/.bin/esbuild" --minify --charset=ascii --log-level=warning --legal-comments=none)

# bundle SCRIPT PAGE ASSETS NAME STYLE...: uPlot's own style comes before ours.
bundle() {
  local script="$1" page="$2" assets="$package/$3" name="$4"
  shift 4
  mkdir -p "$assets"
  cat "$work/node_modules/uplot/dist/uPlot.min.css" "$@" > "$work/$name.css"
  "${esbuild[@]}" "$script" --bundle --target=es2022 --jsx=automatic \
    --jsx-import-source=preact --banner:js="/* sources $digest; licences: LICENSES.txt */" \
    --outfile="$assets/$name.js"
  "${esbuild[@]}" "$work/$name.css" --outfile="$assets/$name.css"
  cp "$page" "$assets/index.html"
  for library in preact uplot; do
    printf '%s\n\n' "$library"
    cat "$work/node_modules/$library/LICENSE"
    printf '\n'
  done > "$assets/LICENSES.txt"
  wc -c "$assets"/*
}

src="$work/src"
bundle "$src/main.jsx" "$src/index.html" viewer/assets app "$src/style.css"
bundle "$src/site/main.jsx" "$src/site/index.html" bench_site/assets site "$src/style.css" "$src/site/site.css"
