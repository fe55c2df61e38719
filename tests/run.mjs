/**
 * `npm test`: installs what is missing and runs everything, in the order in which a failure is cheapest to find.
 * `npm test -- unit e2e` runs those stages only. Every stage runs, whatever became of those before it; the last line
 * is the sum.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildWhatIsOld } from '../lib/launch/build.mjs';
import { installWhatIsMissing } from '../lib/launch/install.mjs';
import { root } from '../lib/launch/root.mjs';
import { giveUp, LaunchError, say } from '../lib/launch/say.mjs';
import { ensureAgentSdk } from './support/agent-sdk.mjs';
import { ensureChromium } from './support/chromium-path.mjs';

/** A stage that hangs must not hang the run. */
const STAGE_LIMIT_MS = 900_000;

const reports = mkdtempSync(join(tmpdir(), 'interlude-tests-'));

/** @type {Record<string, () => Promise<Tally>>} */
const STAGES = {
  lint: () => check(bin('@biomejs/biome', 'bin/biome'), ['check', '.']),
  types: async () => {
    // Next writes the types of its own imports (styles, images) here; a fresh checkout has none.
    const generated =
      existsSync(join(root, 'next-env.d.ts')) || (await passes(bin('next', 'dist/bin/next'), ['typegen']));
    return generated ? check(bin('typescript', 'bin/tsc'), ['--noEmit']) : FAILED;
  },
  unit: () => vitest('unit'),
  property: () => vitest('property'),
  build: () =>
    buildWhatIsOld().then(
      () => PASSED,
      (error) => failed(error.message),
    ),
  contract: () => vitest('contract'),
  integration: () => vitest('integration'),
  ui: () => vitest('ui'),
  e2e: async () => {
    const missing = ensureChromium();
    return missing ? failed(missing) : vitest('e2e', 'tests/vitest.e2e.config.ts');
  },
  faults: () => vitest('faults', 'tests/vitest.faults.config.ts'),
  agents: async () => {
    const sdk = ensureAgentSdk();
    if ('missing' in sdk) return failed(sdk.missing);
    process.env.INTERLUDE_CLAUDE_SDK_DIR = sdk.folder;
    return vitest('agents', 'tests/vitest.faults.config.ts');
  },
};

/** @typedef {{ passed: number, failed: number }} Tally */
const PASSED = { passed: 1, failed: 0 };
const FAILED = { passed: 0, failed: 1 };

async function run() {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !Object.hasOwn(STAGES, name));
  if (unknown.length > 0) {
    throw new LaunchError(`there is no stage "${unknown[0]}"; stages are ${Object.keys(STAGES).join(', ')}`, 2);
  }
  process.chdir(root);
  await installWhatIsMissing();
  const rows = [];
  for (const name of asked.length > 0 ? asked : Object.keys(STAGES)) {
    say(`\n── ${name} ${'─'.repeat(Math.max(2, 76 - name.length))}`);
    const startedAt = Date.now();
    const tally = await STAGES[name]().catch((error) => failed(String(error?.stack ?? error)));
    rows.push({ name, ...tally, seconds: (Date.now() - startedAt) / 1_000 });
  }
  report(rows);
}

/** @param {(Tally & { name: string, seconds: number })[]} rows */
function report(rows) {
  say('');
  for (const { name, passed, failed, seconds } of rows) {
    const result = failed > 0 ? `${failed} failed, ${passed} passed` : `${passed} passed`;
    say(`  ${name.padEnd(12)} ${result.padEnd(28)} ${seconds.toFixed(1).padStart(6)} s`);
  }
  const sum = rows.reduce((all, row) => ({ passed: all.passed + row.passed, failed: all.failed + row.failed }), {
    passed: 0,
    failed: 0,
  });
  say(`\n${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed > 0 ? 1 : 0;
}

/**
 * The tests of one folder, counted one by one. A run that fails without a failed test (a file that can't be loaded, an
 * unhandled rejection) counts as one failure.
 *
 * @param {string} folder
 * @param {string} [config]
 */
async function vitest(folder, config = 'tests/vitest.config.ts') {
  if (!existsSync(join(root, 'tests', folder))) return failed(`there is no tests/${folder}`);
  const output = join(reports, `${folder}.json`);
  const args = ['run', '--config', config, `tests/${folder}/`, '--reporter=default', '--reporter=json'];
  const ok = await passes(bin('vitest', 'vitest.mjs'), [...args, `--outputFile.json=${output}`]);
  if (!existsSync(output)) return failed(`vitest wrote no report for tests/${folder}`);
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(output, 'utf8'));
  return { passed: numPassedTests, failed: ok ? numFailedTests : Math.max(numFailedTests, 1) };
}

/**
 * @param {string} script
 * @param {string[]} args
 */
async function check(script, args) {
  return (await passes(script, args)) ? PASSED : FAILED;
}

/** @param {string} why */
function failed(why) {
  process.stderr.write(`${why}\n`);
  return FAILED;
}

/**
 * A program out of a package, without npx in between.
 *
 * @param {string} name
 * @param {string} file
 */
function bin(name, file) {
  return join(root, 'node_modules', name, file);
}

/**
 * @param {string} script
 * @param {string[]} args
 * @returns {Promise<boolean>}
 */
function passes(script, args) {
  return new Promise((resolve) => {
    // A group of its own: what the stage has started ends with it.
    const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit', detached: true });
    const end = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch {
        // all of it is gone already
      }
    };
    const limit = setTimeout(() => {
      process.stderr.write(`ended after ${STAGE_LIMIT_MS / 1_000} s\n`);
      end('SIGKILL');
    }, STAGE_LIMIT_MS);
    const interrupt = () => {
      end('SIGKILL');
      process.exit(130);
    };
    process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
    child.once('exit', (code) => {
      clearTimeout(limit);
      process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
      end('SIGKILL');
      resolve(code === 0);
    });
    child.once('error', () => resolve(false));
  });
}

try {
  await run();
} catch (error) {
  giveUp(error);
} finally {
  rmSync(reports, { recursive: true, force: true });
}
