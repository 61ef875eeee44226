# Writes a ctest script with one entry per suite of a GoogleTest program: cmake -D PROGRAM=... -D FOLDER=... -D OUTPUT=...
# -D SECONDS=... -D COST=... -P DiscoverSuites.cmake
execute_process(COMMAND "${PROGRAM}" --gtest_list_tests WORKING_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE listed
  COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)
string(REPLACE "\n" ";" lines "${listed}")
set(script)
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.( .*)?$")
    set(suite "${CMAKE_MATCH_1}")
    string(APPEND script "add_test([=[${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
      "set_tests_properties([=[${suite}]=] PROPERTIES WORKING_DIRECTORY [=[${FOLDER}]=] TIMEOUT ${SECONDS} COST ${COST})\n")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "${script}")
