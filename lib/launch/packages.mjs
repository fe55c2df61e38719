/**
 * `npm run pack`: the two packages that people install, as archives in `dist/`: `interlude` (the built dashboard and its
 * command line) and `@interlude/runner`. Both run on every platform: native code comes from npm.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { npmProgram } from '../runner/host/own-program.mjs';
import { exitWithError, printLine } from './launch-error.mjs';
import { compile, NATIVE, packInto, RUNNER_FILES } from './pack.mjs';
import { root } from './paths.mjs';

const DIST = join(root, 'dist');

/** @typedef {{ version: string, [field: string]: unknown, dependencies: Record<string, string> }} Manifest */

/** @param {string} file @returns {Manifest} */
const readManifest = (file) => JSON.parse(readFileSync(file, 'utf8'));
const manifest = readManifest(join(root, 'package.json'));
const { version, license, engines, imports } = manifest;
const native = Object.fromEntries(NATIVE.map((name) => [name, manifest.dependencies[name] ?? '']));

async function packages() {
  rmSync(DIST, { recursive: true, force: true });
  mkdirSync(DIST);
  await packDashboard(join(DIST, 'interlude'));
  await packRunner(join(DIST, 'runner'));
  for (const name of ['interlude', 'runner']) archive(join(DIST, name));
  // exit explicitly: Next keeps handles open
  process.exit();
}

/**
 * The packed copy as a package. Packages that only Next needs are bundled as traced: as dependencies they would add 250
 * MB of compilers and an image library.
 *
 * @param {string} folder
 */
async function packDashboard(folder) {
  await packInto(folder);
  const modules = join(folder, 'node_modules');
  const ofNpm = nativePackages();
  for (const name of packagesIn(modules)) if (ofNpm.has(name)) rmSync(join(modules, name), { recursive: true });
  const bundled = packagesIn(modules);
  const versions = Object.fromEntries(bundled.map((name) => [name, standAlone(join(modules, name, 'package.json'))]));
  nameNativeModules(join(folder, '.next'));
  rmSync(join(folder, '.next', 'node_modules'), { recursive: true, force: true });
  writeManifest(folder, {
    ...{ name: 'interlude', version, description: manifest.description, license, type: 'module', engines, imports },
    bin: { interlude: 'lib/launch/interlude.mjs' },
    dependencies: { ...native, ...versions },
    bundleDependencies: bundled,
  });
  copyPages(folder, 'README.md');
}

/** @param {string} folder */
async function packRunner(folder) {
  await compile([{ in: 'lib/runner/cli/bin.ts', out: 'interlude-runner' }, ...LIBRARY], join(folder, 'dist'));
  for (const file of RUNNER_FILES) cpSync(join(root, file), join(folder, file));
  const { description } = readManifest(join(root, 'lib/runner/package.json'));
  writeManifest(folder, {
    ...{ name: '@interlude/runner', version, description, license, type: 'module', engines },
    bin: { 'interlude-runner': 'dist/interlude-runner.mjs' },
    exports: Object.fromEntries(
      LIBRARY.map(({ in: file, out }) => [
        `./${out}`,
        { types: `./types/${file.replace(/ts$/, 'd.ts')}`, default: `./dist/${out}.mjs` },
      ]),
    ),
    dependencies: { ...native, ...emitTypes(folder) },
  });
  copyPages(folder, 'lib/runner/README.md');
}

/** Entry points for people who write a runner for another kind of agent. */
const LIBRARY = [
  { in: 'lib/runner/outbox/outbox.ts', out: 'outbox' },
  { in: 'lib/runner/host/runner-host.ts', out: 'runner-host' },
  { in: 'lib/runner/host/claim-outbox.ts', out: 'claim-outbox' },
  { in: 'lib/runner/adapters/writer/session-writer.ts', out: 'session-writer' },
];

/**
 * Writes the library's type declarations, with relative specifiers instead of our workspace names.
 *
 * @param {string} folder
 * @returns {Record<string, string>} the packages that the declarations import, with versions
 */
function emitTypes(folder) {
  const types = join(folder, 'types');
  const config = join(folder, 'tsconfig.json');
  const compilerOptions = {
    ...{ noEmit: false, emitDeclarationOnly: true, declaration: true, incremental: false, plugins: [] },
    ...{ rootDir: root, outDir: types, types: ['node'], paths: { '@interlude/*': [join(root, 'lib/*')] } },
  };
  const files = LIBRARY.map((entry) => join(root, entry.in));
  writeFileSync(config, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files, include: [] }));
  const tsc = createRequire(join(root, 'package.json'))
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', config], { stdio: ['ignore', 'inherit', 'inherit'] });
  rmSync(config);
  /** @type {Record<string, string>} */
  const dependencies = {};
  for (const name of readdirSync(types, { recursive: true, encoding: 'utf8' })) {
    const path = join(types, name);
    if (!/\.d\.m?ts$/.test(name)) continue;
    const specifier = (/** @type {string} */ target) => {
      const ours = target.replace(/^@interlude\/(.*)/, (_, inner) =>
        relative(dirname(path), join(types, 'lib', inner)),
      );
      if (ours !== target || target.startsWith('.')) {
        const own = ours.startsWith('.') ? ours : `./${ours}`;
        return own.endsWith('.mjs') ? own : `${own}.js`;
      }
      const [module = target] = /^(?:@[^/]+\/)?[^/]+/.exec(target) ?? [];
      const version = manifest.dependencies[module];
      if (version !== undefined) dependencies[module] = version;
      return target;
    };
    const text = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      text.replace(/(?<=\bfrom |\bimport\()(['"])([^'"]+)\1/g, (_, quote, target) => quote + specifier(target) + quote),
    );
  }
  return dependencies;
}

/** @param {string} modules @returns {string[]} names of its packages */
function packagesIn(modules) {
  return readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
}

/** @returns the native packages and everything that npm installs along with them */
function nativePackages() {
  const lock = readManifest(join(root, 'package-lock.json')).packages;
  const needed = new Set(NATIVE);
  const entries = /** @type {Record<string, Partial<Manifest> & { optionalDependencies?: object }>} */ (lock);
  for (const one of needed) {
    const { dependencies, optionalDependencies } = entries[`node_modules/${one}`] ?? {};
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) needed.add(next);
  }
  return needed;
}

/**
 * Removes the dependencies of a bundled package: its traced files need none.
 *
 * @param {string} file
 * @returns {string} its version
 */
function standAlone(file) {
  const { name, version: own, main, exports, type, license: itsLicense } = readManifest(file);
  writeFileSync(file, JSON.stringify({ name, version: own, license: itsLicense, main, exports, type }));
  return own;
}

/**
 * Turbopack imports external packages by hashed names, which are links in the build. A package can't contain links.
 *
 * @param {string} folder
 */
function nameNativeModules(folder) {
  const hashed = new RegExp(`(${NATIVE.join('|')})-[0-9a-f]{16}`, 'g');
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, file);
    if (!path.endsWith('.js') || !statSync(path).isFile()) continue;
    const text = readFileSync(path, 'utf8');
    const named = text.replaceAll(hashed, '$1');
    if (named !== text) writeFileSync(path, named);
  }
}

/** @param {string} folder @param {object} fields */
function writeManifest(folder, fields) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(fields, null, 2)}\n`);
}

/** @param {string} folder @param {string} readme */
function copyPages(folder, readme) {
  cpSync(join(root, readme), join(folder, 'README.md'));
  for (const file of ['LICENSE', 'CHANGELOG.md']) cpSync(join(root, file), join(folder, file));
}

/** @param {string} folder */
function archive(folder) {
  const npm = npmProgram();
  const args = [...npm.args, 'pack', '--json', '--pack-destination', DIST];
  const [{ filename, size }] = JSON.parse(execFileSync(npm.program, args, { cwd: folder, encoding: 'utf8' }));
  printLine(`dist/${filename}  ${(size / 1_000_000).toFixed(1)} MB`);
}

packages().catch(exitWithError);
