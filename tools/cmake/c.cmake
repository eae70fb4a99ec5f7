# libskein_c, the library behind apps/embed/c/skein_c.h, which exports that header's functions and nothing else. Included by
# CMakeLists.txt.
if(SKEIN_SANITIZE)  # programs in C do not bring its runtime along
  return()
endif()
set(exports ${PROJECT_SOURCE_DIR}/tools/cmake/skein_c.map)
add_library(skein_c SHARED apps/embed/c/skein_c.cc)
target_link_libraries(skein_c PRIVATE skein_apps)
target_link_options(skein_c PRIVATE -Wl,--version-script=${exports})
target_compile_options(skein_c PRIVATE -O1)
set_target_properties(skein_c PROPERTIES VERSION 1 SOVERSION 1 INSTALL_RPATH "$ORIGIN" LINK_DEPENDS ${exports})
