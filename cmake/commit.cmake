# cmake -DSOURCE=DIR -DOUTPUT=FILE -P commit.cmake: a header with the commit of a checkout, rewritten where it changed, so
# that nothing else is compiled again. "unknown" where there is no checkout, as in an archive of the sources.
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix
    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND prefix STREQUAL "")  # else it is a folder of somebody else's checkout
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --match=v*
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(commit ${found})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define TRIVIUM_COMMIT \"${commit}\"\n")
