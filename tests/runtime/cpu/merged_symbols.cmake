# Fails when objects of an instruction set define a weak symbol without that set's name in it: the linker may then take
# this copy for the whole program, and a processor without the instructions would run it.
string(REPLACE "|" ";" objects "${OBJECTS}")
execute_process(COMMAND ${NM} -C --defined-only ${objects} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${NM} failed")
endif()
string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" weak "${symbols}")
foreach(symbol IN LISTS weak)
  # DW.ref.* is a pointer to the personality routine: data, no instructions.
  if(NOT symbol MATCHES "::${VARIANT}::|Eigen_${VARIANT}|DW\\.ref\\.")
    message(SEND_ERROR "merged across instruction sets: ${symbol}")
  endif()
endforeach()
