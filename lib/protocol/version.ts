/** The version in it changes only when an old client would misread the new wire. */
export const API_BASE = '/api/v1';
