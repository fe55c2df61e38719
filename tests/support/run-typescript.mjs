/** `node run-typescript.mjs tests/support/file.ts [argument…]` runs a TypeScript program of the tests. */
import { loadTypescript } from '../../lib/launch/typescript.mjs';

const [path] = process.argv.splice(2, 1);
await loadTypescript(path ?? '');
