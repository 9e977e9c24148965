# libsolv with conda's rules: Debian 12's package is built without them. From Debian's source, pinned and checked.
include(ExternalProject)

set(libsolv_prefix ${PROJECT_BINARY_DIR}/libsolv)
set(libsolv_libraries ${libsolv_prefix}/lib/libsolvext.a ${libsolv_prefix}/lib/libsolv.a)
# The archive is kept where it survives a removed build tree, so that the next one needs no network.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(libsolv_downloads $ENV{XDG_CACHE_HOME}/containerize-build)
elseif(DEFINED ENV{HOME})
  set(libsolv_downloads $ENV{HOME}/.cache/containerize-build)
else()
  set(libsolv_downloads ${PROJECT_BINARY_DIR}/downloads)
endif()

if(CMAKE_TOOLCHAIN_FILE)
  set(libsolv_toolchain -DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE})
endif()

ExternalProject_Add(libsolv_build
  URL http://deb.debian.org/debian/pool/main/libs/libsolv/libsolv_0.7.23.orig.tar.gz
  URL_HASH SHA256=0286155964373c6cc3802d025750786c3ee79608d5cb884598e110e3918bb2fe
  DOWNLOAD_DIR ${libsolv_downloads}
  DOWNLOAD_EXTRACT_TIMESTAMP ON
  PREFIX ${libsolv_prefix}/work
  CMAKE_ARGS
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${libsolv_prefix} -DLIB=lib -DCMAKE_INSTALL_LIBDIR=lib
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_C_FLAGS=-w
    ${libsolv_toolchain} -DENABLE_CONDA=ON -DENABLE_STATIC=ON -DDISABLE_SHARED=ON
  BUILD_BYPRODUCTS ${libsolv_libraries}
  LOG_DOWNLOAD ON LOG_CONFIGURE ON LOG_BUILD ON LOG_INSTALL ON LOG_OUTPUT_ON_FAILURE ON)

find_package(ZLIB REQUIRED)
file(MAKE_DIRECTORY ${libsolv_prefix}/include)
add_library(libsolv INTERFACE)
add_dependencies(libsolv libsolv_build)
target_include_directories(libsolv SYSTEM INTERFACE ${libsolv_prefix}/include)
target_link_libraries(libsolv INTERFACE ${libsolv_libraries} ZLIB::ZLIB)
