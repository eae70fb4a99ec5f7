# The programs and their tests with an emulated GPU instead of CUDA's runtime: the same objects, but for the .cu
# files, which g++ compiles here, engine/cuda/library.cc and comm/ucx/ucx_table.cc. What is skipped elsewhere for want of a
# device runs here.
set(folder ${PROJECT_BINARY_DIR}/emulated)
set(emulated_kernels "")
file(GLOB_RECURSE emulated_cu CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/engine/*.cu)
foreach(source ${emulated_cu})  # a .cu file is compiled as C++ by way of a file that includes it
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
  string(REGEX REPLACE "[/.]" "_" flat ${name})
  file(CONFIGURE OUTPUT ${folder}/${flat}.cc CONTENT "#include \"tests/emulated/launch.h\"\n#include \"${name}\"\n")
  list(APPEND emulated_kernels ${folder}/${flat}.cc)
endforeach()
# A GPU ends a kernel that loads several numbers at once from an unaligned address; this processor would not.
set(as_aligned -fsanitize=alignment -fsanitize-undefined-trap-on-error)
set_source_files_properties(${emulated_kernels} PROPERTIES COMPILE_OPTIONS "${as_aligned}")
file(GLOB emulated_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/emulated/*.cc)
list(FILTER emulated_sources EXCLUDE REGEX "_test\\.cc$")
set(exchanged "\\.cu\\.o$|/engine/cuda/library\\.cc\\.o$|/comm/ucx/ucx_table\\.cc\\.o$")
add_library(skein_emulated STATIC EXCLUDE_FROM_ALL ${emulated_kernels} ${emulated_sources}
            $<FILTER:$<TARGET_OBJECTS:skein>,EXCLUDE,${exchanged}>)
target_include_directories(skein_emulated PUBLIC ${PROJECT_SOURCE_DIR})
target_include_directories(skein_emulated SYSTEM PUBLIC ${GPU_INCLUDE_DIRS} ${UCX_INCLUDE_DIRS})
target_compile_options(skein_emulated PRIVATE ${SKEIN_FLAGS} -O1)  # what is measured is measured elsewhere
target_compile_definitions(skein_emulated PRIVATE SKEIN_CUDA SKEIN_EMULATED_GPU SKEIN_VERSION="${PROJECT_VERSION}"
                           SKEIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SKEIN_CUDA_ARCHITECTURES="90")
target_link_libraries(skein_emulated PUBLIC OpenMP::OpenMP_CXX Threads::Threads fmt::fmt nlohmann_json::nlohmann_json
                      ${LIBRARIES})
target_precompile_headers(skein_emulated PRIVATE ${PRECOMPILED})

# emulate(NAME OBJECTS): NAME_emulated, the program of these objects on the emulated device.
function(emulate program objects)
  add_executable(${program}_emulated ${objects})
  if(TARGET skein_apps)
    target_link_libraries(${program}_emulated PRIVATE $<TARGET_FILE:skein_apps> onnx_messages PkgConfig::TOMLPLUSPLUS)
    add_dependencies(${program}_emulated skein_apps)
  endif()
  target_link_libraries(${program}_emulated PRIVATE skein_emulated)
  set_target_properties(${program}_emulated PROPERTIES ENABLE_EXPORTS ON)  # names in backtraces
endfunction()

foreach(program ${PROGRAMS})
  emulate(${program} $<TARGET_OBJECTS:${program}>)
endforeach()
# The Python module alike. Its package is in ${folder}/python.
if(TARGET _skein)
  nanobind_add_module(_skein_emulated NB_STATIC ${python_sources})
  target_compile_definitions(_skein_emulated PRIVATE SKEIN_CUDA)
  target_compile_features(_skein_emulated PRIVATE cxx_std_20)
  target_compile_options(_skein_emulated PRIVATE ${SKEIN_FLAGS} -O1)
  target_link_libraries(_skein_emulated PRIVATE $<TARGET_FILE:skein_apps> onnx_messages PkgConfig::TOMLPLUSPLUS skein_emulated)
  add_dependencies(_skein_emulated skein_apps)
  set_target_properties(_skein_emulated PROPERTIES OUTPUT_NAME _skein LIBRARY_OUTPUT_DIRECTORY ${folder}/python/skein
                        LINK_DEPENDS "${scripts}")
  add_custom_command(TARGET _skein_emulated POST_BUILD VERBATIM COMMAND ${CMAKE_COMMAND} -E copy ${scripts} ${folder}/python/skein)
  add_test(NAME emulated.python COMMAND ${Python_EXECUTABLE} -m unittest -v test_arrays
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/emulated)
  set_tests_properties(emulated.python PROPERTIES LABELS fast TIMEOUT 600 RUN_SERIAL TRUE ENVIRONMENT
    "${test_environment};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${folder}/python:${PROJECT_SOURCE_DIR}/tests/python;\
XDG_CACHE_HOME=${folder};SKEIN_EMULATED_GPUS=2")
endif()

foreach(name emulated_gpu emulated_places)
  add_executable(${name}_test ${PROJECT_SOURCE_DIR}/tests/emulated/${name}_test.cc)
  target_compile_options(${name}_test PRIVATE ${SKEIN_FLAGS} ${as_aligned})
  target_include_directories(${name}_test PRIVATE ${UCX_INCLUDE_DIRS})
  target_link_libraries(${name}_test PRIVATE skein_emulated GTest::gtest GTest::gtest_main)
  add_test(NAME ${name}_test COMMAND ${name}_test)
  set_tests_properties(${name}_test PROPERTIES LABELS fast TIMEOUT 300 ENVIRONMENT ${test_environment})
endforeach()

# device_tests: the tests that use a GPU, for a machine that has one: tools/make_bundle packs it, tools/gpu_check runs it.
# On the emulated device ctest runs what the tests have for CUDA. A device works on one thread: two tests at a time.
set(emulated_objects "/unity_apart_[a-z_0-9]*_cxx[.]cxx|/(${on_devices_regex})_test[.]cc")
set(device_objects "$<TARGET_OBJECTS:engine_tests>;$<TARGET_OBJECTS:comm_tests>;$<TARGET_OBJECTS:cuda_tests>")
set(device_main $<TARGET_OBJECTS:main_of_calculating>)
add_executable(device_tests "$<FILTER:${device_objects},INCLUDE,${emulated_objects}|/(library|nccl)_test[.]cc>" ${device_main})
target_link_libraries(device_tests PRIVATE skein GTest::gtest)
emulate(device_tests "$<FILTER:${device_objects},INCLUDE,${emulated_objects}>;${device_main}")
target_link_libraries(device_tests_emulated PRIVATE GTest::gtest)
foreach(name ${on_devices})
  add_test(NAME emulated.${name} COMMAND device_tests_emulated --file=${name}_test --gtest_filter=*/cuda*:*/device*)
  set_tests_properties(emulated.${name} PROPERTIES LABELS fast TIMEOUT 600
                       ENVIRONMENT "${test_environment};XDG_CACHE_HOME=${folder}")
endforeach()
foreach(script messages rows)
  add_test(NAME emulated.${script} COMMAND ${PROJECT_SOURCE_DIR}/tests/emulated/${script} ${PROJECT_BINARY_DIR})
  set_tests_properties(emulated.${script} PROPERTIES LABELS script TIMEOUT 600 RESOURCE_LOCK workers)
endforeach()
