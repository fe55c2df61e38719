import { BASE_PATH } from './base-path.mjs';

/** It changes only when an old client would misread the new wire. */
export const PROTOCOL_VERSION = '1';
export const API_BASE = `/api/v${PROTOCOL_VERSION}`;
/** The same as this server's own pages ask for it. */
export const API_ADDRESS = BASE_PATH + API_BASE;
