/** Which release this is, and which protocol it speaks. */
export const VERSION = '0.1.0';

/** The session access protocol's version (seed S2); it moves only when an old client would misread a new answer. */
export const PROTOCOL_VERSION = '0.1';
