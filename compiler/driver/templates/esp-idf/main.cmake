idf_component_register(SRCS "main.c" REQUIRES tvmgen_@MODEL@)
