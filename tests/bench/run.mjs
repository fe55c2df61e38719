import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/**
 * `npm run bench [name…]`: runs every tests/bench/*.bench.ts, or those whose names start with an argument, sequentially
 * in separate processes. A bench prints one line per figure and exits non-zero if a limit is missed.
 */
const folder = fileURLToPath(new URL('.', import.meta.url));
const wanted = process.argv.slice(2);
const files = (await readdir(folder)).filter((file) => file.endsWith('.bench.ts')).sort();
const chosen = files.filter((file) => wanted.length === 0 || wanted.some((name) => file.startsWith(name)));
if (chosen.length === 0) {
  console.error(`No bench is named ${wanted.join(', ')}. There are: ${files.join(', ')}`);
  process.exit(2);
}

let failed = 0;
for (const file of chosen) {
  const args = ['--import', 'tsx', `${folder}run-one.mjs`, `${folder}${file}`];
  // the channel's end tells the bench that this process has exited
  const child = spawn(process.execPath, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  const code = await new Promise((resolve, reject) => child.on('exit', resolve).on('error', reject));
  if (code !== 0) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
