/**
 * A fake npm that is quick, fails or waits. Installs a package that prints a line and exits when asked to run an agent.
 * NPM_TELLS names a file that gets a line per call.
 */
import { appendFileSync, existsSync, mkdirSync, statSync, watch, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const args = process.argv.slice(2);
const prefix = args[args.indexOf('--prefix') + 1] ?? '';
const spec = args.at(-1) ?? '';
const [name, version] = [spec.slice(0, spec.lastIndexOf('@')), spec.slice(spec.lastIndexOf('@') + 1)];
const home = join(prefix, 'node_modules', ...name.split('/'));
const { NPM_DOES = 'installs', NPM_TELLS = '', NPM_GO = '' } = process.env;
const kept = Object.keys(process.env).filter((one) => one.startsWith('INTERLUDE_') || /loglevel/.test(one));
const mode = (statSync(prefix).mode & 0o777).toString(8);
appendFileSync(NPM_TELLS, `${JSON.stringify({ args, prefix, kept, mode })}\n`);

mkdirSync(home, { recursive: true });
writeFileSync(join(home, 'package.json'), JSON.stringify({ name, version, main: 'index.cjs' }));
process.stderr.write('npm stands in\n');
if (NPM_DOES === 'fails') {
  process.stderr.write('npm error 404 no such package\n');
  process.exit(7);
}
if (NPM_DOES === 'waits') {
  const go = () => existsSync(NPM_GO) && finish();
  const watcher = watch(dirname(NPM_GO), go);
  process.once('exit', () => watcher.close());
  go();
} else finish();

function finish() {
  writeFileSync(
    join(home, 'index.cjs'),
    `exports.query = () => { process.stdout.write('the agent runs\\n'); process.exit(0); };`,
  );
  process.exit(0);
}
