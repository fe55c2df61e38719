import { basename } from 'node:path';

/**
 * The npm that started us, else the one on the PATH. Plain JavaScript without a package: `npm start` installs with it.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{ program: string, args: string[] }} what to run, and what comes before npm's own arguments
 */
export function npmProgram(env = process.env) {
  const started = env.npm_execpath ?? '';
  // pnpm and yarn set the same variable
  return /^npm.*\.[cm]?js$/.test(basename(started))
    ? { program: process.execPath, args: [started] }
    : { program: 'npm', args: [] };
}
