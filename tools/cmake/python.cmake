# skein._skein, the module of the Python package in apps/embed/python/skein. Included by CMakeLists.txt.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
find_package(nanobind CONFIG REQUIRED)
nanobind_add_module(_skein NB_STATIC apps/embed/python/module.cc apps/embed/python/job.cc)
target_link_libraries(_skein PRIVATE skein_apps)
target_compile_options(_skein PRIVATE -O1)
# The package can be imported from the build folder, too.
set_target_properties(_skein PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/skein)
add_custom_command(TARGET _skein POST_BUILD VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/apps/embed/python/skein
                           ${PROJECT_BINARY_DIR}/python/skein)
if(SKBUILD)
  install(TARGETS _skein LIBRARY DESTINATION skein)
endif()
