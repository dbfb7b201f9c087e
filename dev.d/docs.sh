# Pictures of the desktop program and the site. Part of ./dev.

# One plan for hardware that is not here and one that was run here, seen through every view.
run_screenshots() {
  ensure "${build_packages[@]}" "${gui_packages[@]}" -- bible-kjv pngquant
  configure release -DTRIVIUM_GUI=ON
  build release --target trivium-gui trivium
  local folder=build/screenshots view theme file
  mkdir -p "$folder" docs/screenshots
  export XDG_DATA_HOME=$top/$folder/data XDG_CONFIG_HOME=$top/$folder/config QT_QPA_PLATFORM=offscreen
  corpus "$folder/text.txt"
  trivium plan --model gpt3-175b --cluster dgx-a100-80gb:128 --global-batch 1536 --total-tokens 300000000000 -o "$folder/gpt3.json"
  trivium profile --quick
  trivium plan --model gpt-tiny --cluster this-machine --ranks 2 --pipeline 2 --global-batch 8 -o "$folder/tiny.json"
  trivium run "$folder/tiny.json" --corpus "$folder/text.txt" --steps 20 --record "$folder/run.json"
  for view in cluster plans timeline flame memory links explain what-if compare two-plans run validation; do
    file=$folder/gpt3.json
    case $view in compare | run | validation) file=$folder/run.json ;; esac
    for theme in light dark; do
      say "dev: $view $theme"
      build/release/bin/trivium-gui "$file" --screenshot "$view" "docs/screenshots/$view-1600x900-$theme.png" \
        --size 1600x900 --theme "$theme"
    done
  done
  # A picture of 256 colours has a third of the bytes and looks the same.
  if command -v pngquant >/dev/null; then
    pngquant --force --skip-if-larger --strip --ext .png 256 docs/screenshots/*.png || [ $? -eq 98 ]
  fi
}

# Pages link to each other across the tree, so all of them lie below one folder.
run_site() {
  ensure mkdocs
  rm -rf build/site-pages
  mkdir -p build/site-pages
  git ls-files -z '*.md' 'docs/screenshots/*.png' 'hardware_profiles/*.json' python/notebooks LICENSE \
    tests/package/{consumer,subproject} ':!tests/**/*.md' |
    tar --null -T - -cf - | tar -C build/site-pages -xf -
  mkdocs build --quiet --strict -f docs/mkdocs.yml
  say "dev: build/site/index.html"
}
