# lib/sluice/link: all linker inputs of executables, so that no compiler is needed after installation. The start-up
# objects and the static parts of libc and libgcc come from the compiler that builds Sluice.
set(SLUICE_LINK_FOLDER "${PROJECT_BINARY_DIR}/lib/sluice/link")
file(MAKE_DIRECTORY "${SLUICE_LINK_FOLDER}")
foreach(name Scrt1.o crti.o crtn.o crtbeginS.o crtendS.o libgcc.a libc_nonshared.a)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${name} OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${found}")
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} cannot find ${name}; is the package libc6-dev installed?")
  endif()
  configure_file("${found}" "${SLUICE_LINK_FOLDER}/${name}" COPYONLY)
endforeach()

# Additional linker inputs of the runtime besides libraries: none, or the parts of sanitizers that every program
# contains.
set(arguments "")
if(SLUICE_SANITIZE)
  foreach(part asan_static asan asan_cxx)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libclang_rt.${part}-x86_64.a OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(APPEND arguments "--whole-archive ${found} --no-whole-archive\n")
    if(EXISTS "${found}.syms")
      string(APPEND arguments "--dynamic-list=${found}.syms\n")
    endif()
  endforeach()
endif()
file(CONFIGURE OUTPUT "${SLUICE_LINK_FOLDER}/runtime.rsp" CONTENT "${arguments}")

add_custom_target(sluice_link_folder)
foreach(library sluice_runner sluice_help sluice_runtime sluice_cpu_run sluice_io sluice_plan sluice_base sluice_files)
  if(NOT TARGET ${library})
    continue()
  endif()
  set(copy "${SLUICE_LINK_FOLDER}/lib${library}.a")
  add_custom_command(OUTPUT "${copy}" DEPENDS ${library} VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E copy "$<TARGET_FILE:${library}>" "${copy}")
  add_custom_target(link_folder_${library} DEPENDS "${copy}")
  add_dependencies(sluice_link_folder link_folder_${library})
endforeach()
