# cmake -DWORK=FOLDER -DSOURCE=FOLDER -DCONFIG=NAME -DFLAGS=FLAGS -P subproject.cmake: builds a project of somebody else
# that adds the source tree as a subproject, and sees that nothing of it leaks (subproject/CMakeLists.txt).
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/subproject -B ${WORK} -G Ninja -DCMAKE_BUILD_TYPE=${CONFIG}
  -DTRIVIUM=${SOURCE} "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK} --target subproject)
run(${WORK}/subproject)
if(NOT out STREQUAL "124439808 parameters\n")
  message(FATAL_ERROR "expected 124439808 parameters, found ${out}")
endif()
# Everything a subproject installs is what its parent asks for: by default nothing.
run(${CMAKE_COMMAND} --install ${WORK} --prefix ${WORK}/installed)
if(EXISTS ${WORK}/installed/include OR EXISTS ${WORK}/installed/share)
  message(FATAL_ERROR "the subproject installed files of its own:\n${out}")
endif()
