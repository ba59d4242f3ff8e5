# Models, in the tensor library: reading and running them. Above tensor/, and without Python.

file(GLOB OPSCOPE_MODEL_SOURCES CONFIGURE_DEPENDS model/*/*.c model/graph/passes/*.c
     model/program/kinds/*.c)
target_sources(opscope_tensor PRIVATE ${OPSCOPE_MODEL_SOURCES})
