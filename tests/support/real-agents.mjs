import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { printLine } from '../../lib/launch/launch-error.mjs';
import { root } from '../../lib/launch/paths.mjs';
import { loadTypescript } from '../../lib/launch/typescript.mjs';

/**
 * Real agents for tests: pinned versions, each in its own cache folder, installed once and on demand. Includes Node 22
 * as a package for agents that require it.
 */

/**
 * By folder name. Versions are pinned because npm silently installs an older version if the latest doesn't support the
 * current Node.
 *
 * @type {Record<string, { spec: string, megabytes: number }>}
 */
export const REAL_AGENTS = {
  node22: { spec: `node-${process.platform}-${process.arch}@22.23.3`, megabytes: 185 },
  codex: { spec: '@openai/codex@0.171.0', megabytes: 404 },
  opencode: { spec: 'opencode-ai@1.18.33', megabytes: 354 },
  'claude-acp': { spec: '@agentclientprotocol/claude-agent-acp@0.101.0', megabytes: 402 },
  'codex-acp': { spec: '@agentclientprotocol/codex-acp@2.6.0', megabytes: 457 },
  qwen: { spec: '@qwen-code/qwen-code@0.24.4', megabytes: 144 },
  gemini: { spec: '@google/gemini-cli@0.61.0', megabytes: 100 },
  copilotkit: { spec: '@copilotkit/runtime@1.75.0', megabytes: 329 },
};

const LIMIT_MS = 300_000;
const MARK = '.installed';

/** Parent folder of all agents. */
export function agentsFolder() {
  return process.env.INTERLUDE_TEST_AGENTS_DIR ?? join(root, 'node_modules', '.cache', 'interlude-real-agents');
}

/** Names of installed agents. */
export function installedAgents() {
  return Object.keys(REAL_AGENTS).filter((name) => existsSync(join(agentsFolder(), name, MARK)));
}

/**
 * @param {readonly string[]} names
 * @returns {Promise<{ folder: string, missing: string[] }>} `missing`: those that can't be installed, each with why
 */
export async function ensureRealAgents(names) {
  const folder = agentsFolder();
  const missing = [];
  for (const name of names) {
    const trouble = await install(name, join(folder, name));
    if (trouble !== null) missing.push(`${name}: ${trouble}`);
  }
  return { folder, missing };
}

/**
 * @param {string} name
 * @param {string} home
 * @returns {Promise<string | null>} why it can't be had, or null
 */
async function install(name, home) {
  const agent = REAL_AGENTS[name];
  if (agent === undefined) return 'unknown agent';
  const { spec, megabytes } = agent;
  const mark = join(home, MARK);
  if (existsSync(mark) && (await readFile(mark, 'utf8')) === spec) return null;
  printLine(`installing ${spec} for its tests (about ${megabytes} MB)`);
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await writeFile(join(home, 'package.json'), '{"private":true}');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--save-exact'];
  try {
    await promisify(execFile)('npm', ['install', ...options, spec], { cwd: home, timeout: LIMIT_MS });
  } catch (error) {
    const { stderr, message } = /** @type {Error & { stderr?: string }} */ (error);
    return `${spec} can't be installed: ${(stderr || message).trim().split('\n')[0]}`;
  }
  await writeFile(mark, spec);
  return null;
}

/**
 * Installs the Agent SDK for tests that run the real Claude Code. Interlude doesn't depend on it, so this large package
 * goes into its own folder, on demand.
 */

/** The SDK's install folder. */
export function sdkFolder() {
  return process.env.INTERLUDE_CLAUDE_SDK_DIR ?? join(root, 'node_modules', '.cache', 'interlude-agents');
}

/** @returns {Promise<{ folder: string } | { missing: string }>} the SDK's folder, or why it can't be installed */
export async function ensureAgentSdk() {
  const { loadClaudeSdk, wantedClaudeSdk } = await loadTypescript('lib/runner/sources/claude/claude-sdk.ts');
  const { ensurePackage } = await loadTypescript('lib/runner/cli/install-package.ts');
  const named = process.env.INTERLUDE_CLAUDE_SDK_DIR;
  const folder = sdkFolder();
  const wanted = { ...wantedClaudeSdk('', folder), isOwn: named === undefined };
  const ensured = await ensurePackage(wanted, () => loadClaudeSdk('', folder), true, new AbortController().signal);
  return ensured.state === 'ready' ? { folder } : { missing: ensured.why };
}
