/**
 * The Agent SDK for the tests that run the real Claude Code: nothing Interlude itself needs and about 360 MB large, so it
 * is installed into a folder of its own and only when these tests are run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../../lib/launch/root.mjs';

/** The version the recordings were made with and the adapter was measured against. */
const SDK = '@anthropic-ai/claude-agent-sdk@0.3.329';
const INSTALL_LIMIT_MS = 240_000;

/** @returns {{ folder: string } | { missing: string }} where the SDK is, or why it is not */
export function ensureAgentSdk() {
  const folder = process.env.INTERLUDE_CLAUDE_SDK_DIR ?? join(root, 'node_modules', '.cache', 'interlude-agents');
  if (isInstalled(folder)) return { folder };
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{"private":true}\n');
  process.stdout.write(`installing ${SDK} into ${folder}\n`);
  const args = ['install', SDK, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { status, stderr, error } = spawnSync(npm, args, { cwd: folder, encoding: 'utf8', timeout: INSTALL_LIMIT_MS });
  if (status === 0 && isInstalled(folder)) return { folder };
  const why = (error?.message ?? stderr ?? '').trim().split('\n').slice(-3).join('; ');
  return {
    missing: `${SDK} can't be installed into ${folder} (${why}); install it yourself and name the folder in INTERLUDE_CLAUDE_SDK_DIR`,
  };
}

/** @param {string} folder */
function isInstalled(folder) {
  try {
    createRequire(join(folder, 'package.json')).resolve('@anthropic-ai/claude-agent-sdk');
    return true;
  } catch {
    return false;
  }
}
