import { pathToFileURL } from 'node:url';

/** Runs one bench and then ends the process: the browser that its pages share would keep it alive. */
await import(pathToFileURL(String(process.argv[2])).href);
process.exit();
