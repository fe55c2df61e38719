/**
 * Serves one function of a build for Vercel over HTTP, as its launcher is served there: `node function-process.mjs
 * <launcher> <port>`. Says so with a line once it listens.
 */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const [launcher, port] = process.argv.slice(2);
const answer = createRequire(import.meta.url)(String(launcher));
createServer((request, response) => void answer(request, response)).listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('listening\n');
});
