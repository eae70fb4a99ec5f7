# The programs and their tests with an emulated GPU in the place of CUDA's runtime: the same objects, but for the .cu
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
# A GPU ends a kernel that loads several numbers at once from where they are not aligned; this processor would not.
set(as_aligned -fsanitize=alignment -fsanitize-undefined-trap-on-error)
set_source_files_properties(${emulated_kernels} PROPERTIES COMPILE_OPTIONS "${as_aligned}")
file(GLOB emulated_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/emulated/*.cc)
list(FILTER emulated_sources EXCLUDE REGEX "_test\\.cc$")
set(exchanged "\\.cu\\.o$|/engine/cuda/library\\.cc\\.o$|/comm/ucx_table\\.cc\\.o$")
add_library(skein_emulated STATIC EXCLUDE_FROM_ALL ${emulated_kernels} ${emulated_sources}
            $<FILTER:$<TARGET_OBJECTS:skein>,EXCLUDE,${exchanged}>)
target_include_directories(skein_emulated PUBLIC ${PROJECT_SOURCE_DIR})
target_include_directories(skein_emulated SYSTEM PUBLIC ${GPU_INCLUDE_DIRS} ${UCX_INCLUDE_DIRS})
target_compile_options(skein_emulated PRIVATE ${SKEIN_FLAGS} -O1)  # what is measured is measured elsewhere
target_compile_definitions(skein_emulated PRIVATE SKEIN_CUDA SKEIN_EMULATED_GPU SKEIN_VERSION="${PROJECT_VERSION}"
                           SKEIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SKEIN_CUDA_ARCHITECTURES="90")
target_link_libraries(skein_emulated PUBLIC OpenMP::OpenMP_CXX Threads::Threads fmt::fmt nlohmann_json::nlohmann_json
                      DNNL::dnnl JPEG::JPEG PNG::PNG ZLIB::ZLIB PkgConfig::SODIUM ${CMAKE_DL_LIBS})

# emulate(NAME): NAME_emulated, the program NAME on the emulated device.
function(emulate program)
  add_executable(${program}_emulated $<TARGET_OBJECTS:${program}>)
  if(TARGET skein_apps)
    target_link_libraries(${program}_emulated PRIVATE $<TARGET_FILE:skein_apps> onnx_messages PkgConfig::TOMLPLUSPLUS)
    add_dependencies(${program}_emulated skein_apps)
  endif()
  target_link_libraries(${program}_emulated PRIVATE skein_emulated)
  set_target_properties(${program}_emulated PROPERTIES ENABLE_EXPORTS ON)  # names in backtraces
endfunction()

foreach(program ${PROGRAMS})
  emulate(${program})
endforeach()
foreach(name emulated_gpu emulated_places)
  add_executable(${name}_test ${PROJECT_SOURCE_DIR}/tests/emulated/${name}_test.cc)
  target_compile_options(${name}_test PRIVATE ${SKEIN_FLAGS} ${as_aligned})
  target_include_directories(${name}_test PRIVATE ${UCX_INCLUDE_DIRS})
  target_link_libraries(${name}_test PRIVATE skein_emulated GTest::gtest GTest::gtest_main)
  add_test(NAME ${name}_test COMMAND ${name}_test)
  set_tests_properties(${name}_test PROPERTIES LABELS fast TIMEOUT 300 ENVIRONMENT OMP_WAIT_POLICY=passive)
endforeach()
# Of tests that run on each device, only what runs on CUDA. A device works on one thread: two tests at a time.
set(on_devices cuda_chain cuda_comm cuda_conv_bn cuda_conv_gemm cuda_graph cuda_kernels cuda_memory cuda_training device
    device_messages f16 fold graph loss_scale mix mixing narrow ops pointwise random recorded vec)
foreach(name ${on_devices})
  emulate(${name}_test)
  target_link_libraries(${name}_test_emulated PRIVATE GTest::gtest GTest::gtest_main)
  add_test(NAME emulated.${name} COMMAND ${name}_test_emulated --gtest_filter=*/cuda*:*/device*)
  set_tests_properties(emulated.${name} PROPERTIES LABELS fast TIMEOUT 600 ENVIRONMENT "OMP_WAIT_POLICY=passive;XDG_CACHE_HOME=${folder}")
endforeach()
add_test(NAME emulated.messages COMMAND ${PROJECT_SOURCE_DIR}/tests/emulated/messages ${PROJECT_BINARY_DIR})
set_tests_properties(emulated.messages PROPERTIES LABELS script TIMEOUT 600 RESOURCE_LOCK workers)
add_test(NAME emulated.rows COMMAND ${PROJECT_SOURCE_DIR}/tests/emulated/rows ${PROJECT_BINARY_DIR})
set_tests_properties(emulated.rows PROPERTIES LABELS script TIMEOUT 600 RESOURCE_LOCK workers)
