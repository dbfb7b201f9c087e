# A program that runs where none of our packages are: with TRIVIUM_STATIC every library but the C library is linked in.
# Include before libraries are looked for.
if(TRIVIUM_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
endif()

# TRIVIUM_FMT: fmt. Distributions have no archive of it to link in: then one that is made here of its headers, for
# which objects are compiled as for theirs, or of a version that is not known here the headers alone.
macro(trivium_choose_fmt)
  set(TRIVIUM_FMT fmt::fmt)
  if(TRIVIUM_STATIC)
    get_target_property(trivium_fmt_type fmt::fmt TYPE)
    if(trivium_fmt_type STREQUAL STATIC_LIBRARY)
      set(TRIVIUM_FMT fmt::fmt)
    elseif(fmt_VERSION MATCHES "^9\\.")
      add_library(trivium_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_archive.cpp)
      target_compile_definitions(trivium_fmt PUBLIC FMT_SHARED)
      set(TRIVIUM_FMT trivium_fmt)
    else()
      set(TRIVIUM_FMT fmt::fmt-header-only)
    endif()
  endif()
endmacro()

# TRIVIUM_YAML: yaml-cpp, whose package names the shared library; linked statically, the archive next to it.
macro(trivium_choose_yaml)
  set(TRIVIUM_YAML yaml-cpp)
  if(TRIVIUM_STATIC)
    find_library(TRIVIUM_YAML_ARCHIVE NAMES libyaml-cpp.a)
    if(TRIVIUM_YAML_ARCHIVE)
      set(TRIVIUM_YAML ${TRIVIUM_YAML_ARCHIVE})
    endif()
  endif()
endmacro()

function(trivium_link_statically target)
  if(TRIVIUM_STATIC)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
