/** The public SDK: what other programs may build on. */
export { AilsdError, type ErrorCode } from './protocol/errors.js';
export { PROTOCOL_VERSION, VERSION } from './protocol/version.js';
