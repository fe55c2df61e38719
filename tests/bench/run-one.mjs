import { pathToFileURL } from 'node:url';

/**
 * Runs one bench and exits, because the shared browser would keep the process alive. Exits normally when interrupted or
 * when its parent exits, so that its servers stop.
 */
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.once('disconnect', () => process.exit(1));
await import(pathToFileURL(String(process.argv[2])).href);
process.exit();
