/** It changes only when an old client would misread the new wire. */
export const PROTOCOL_VERSION = '1';
export const API_BASE = `/api/v${PROTOCOL_VERSION}`;
