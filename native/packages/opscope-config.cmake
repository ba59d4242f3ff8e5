# The CMake package of Opscope: find_package(opscope) defines
#
#   opscope::opscope   the record layer (libopscope.so)
#   opscope::tensor    the tensor core and compiled models (libopscope_tensor.so), where it is shipped
#
# It lies in opscope.get_library_dir(): pass that folder as -Dopscope_DIR=.../cmake.

get_filename_component(opscope_LIBRARY_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

if(NOT TARGET opscope::opscope)
    add_library(opscope::opscope SHARED IMPORTED)
    set_target_properties(opscope::opscope PROPERTIES
        IMPORTED_LOCATION "${opscope_LIBRARY_DIR}/libopscope.so"
        INTERFACE_INCLUDE_DIRECTORIES "${opscope_LIBRARY_DIR}/include")
endif()

if(NOT TARGET opscope::tensor AND EXISTS "${opscope_LIBRARY_DIR}/libopscope_tensor.so")
    add_library(opscope::tensor SHARED IMPORTED)
    set_target_properties(opscope::tensor PROPERTIES
        IMPORTED_LOCATION "${opscope_LIBRARY_DIR}/libopscope_tensor.so"
        INTERFACE_LINK_LIBRARIES opscope::opscope)
endif()
