# Looks for what the desktop program needs and says what it found.
#   TRIVIUM_HAS_GUI   ON where Qt 6 Widgets and Svg are there, and simdjson
set(TRIVIUM_HAS_GUI OFF)
if(NOT TRIVIUM_GUI)
  message(STATUS "Desktop program: left out, TRIVIUM_GUI is OFF")
  return()
endif()
find_package(Qt6 6.4 QUIET COMPONENTS Widgets Svg Test)
find_package(simdjson QUIET)
if(simdjson_FOUND AND Qt6_FOUND AND Qt6Widgets_FOUND AND Qt6Svg_FOUND AND Qt6Test_FOUND)
  set(TRIVIUM_HAS_GUI ON)
  message(STATUS "Desktop program: Qt ${Qt6_VERSION}")
else()
  message(STATUS "Desktop program: left out, no Qt 6.4 or newer with Widgets, Svg and Test, or no simdjson"
    " (qt6-base-dev, qt6-svg-dev, libsimdjson-dev)")
endif()
