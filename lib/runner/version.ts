import { readFileSync } from 'node:fs';

const manifest = new URL('../../package.json', import.meta.url);

/** Of this checkout, which runners and the command line share. */
export const RUNNER_VERSION: string = (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
