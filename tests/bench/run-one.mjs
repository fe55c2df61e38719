import { pathToFileURL } from 'node:url';

/**
 * Runs one bench and then ends the process: the browser that its pages share would keep it alive. Interrupted, or left by
 * who has started it, it ends as it would have, so that its servers end with it.
 */
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.once('disconnect', () => process.exit(1));
await import(pathToFileURL(String(process.argv[2])).href);
process.exit();
