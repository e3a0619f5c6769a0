/*
 * The configuration that the runtime is built with when the project brings none of its own: all defaults, which are in
 * tvm/runtime/crt/internal/config.h. To change some, copy templates/crt_config.h.template to a folder of the project
 * and put it on the include path instead of this one.
 */
#ifndef CRT_CONFIG_H_
#define CRT_CONFIG_H_

#endif /* CRT_CONFIG_H_ */
