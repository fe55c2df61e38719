/** `node run-typescript.mjs tests/support/file.ts [argument…]`: a program of the tests as a process of its own. */
import { loadTypescript } from '../../lib/launch/typescript.mjs';

const [path] = process.argv.splice(2, 1);
await loadTypescript(path ?? '');
