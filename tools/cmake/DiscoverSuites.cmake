# Writes a ctest script with one entry per suite of a GoogleTest program: cmake -D PROGRAM=... -D FOLDER=... -D OUTPUT=...
# -D SECONDS=... -D COST=... -P DiscoverSuites.cmake
execute_process(COMMAND "${PROGRAM}" --gtest_list_tests WORKING_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE listed
  COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)
string(REPLACE "\n" ";" lines "${listed}")
# A suite in full may take hours.
set(script "set(seconds ${SECONDS})\nif(DEFINED ENV{SLUICE_TEST_FULL})\n  set(seconds 36000)\nendif()\n")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.( .*)?$")
    set(suite "${CMAKE_MATCH_1}")
    string(APPEND script "add_test([=[${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
      "set_tests_properties([=[${suite}]=] PROPERTIES WORKING_DIRECTORY [=[${FOLDER}]=] TIMEOUT \${seconds} COST ${COST})\n")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "${script}")
