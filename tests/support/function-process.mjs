/**
 * Serves one function of a Vercel build over HTTP: `node function-process.mjs <launcher> <port>`. Prints a line once it
 * listens.
 */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const [launcher, port] = process.argv.slice(2);
const answer = createRequire(import.meta.url)(String(launcher));
createServer((request, response) => void answer(request, response)).listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('listening\n');
});
