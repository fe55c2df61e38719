import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Entry {
  integrity?: string;
  link?: boolean;
  /** Bundled in the archive of another package, whose integrity covers it. */
  inBundle?: boolean;
}

const locks = execFileSync('git', ['ls-files', '*package-lock.json', '*npm-shrinkwrap.json'], { encoding: 'utf8' });

test.each(locks.trim().split('\n'))('every package of %s has a SHA-512 integrity', (file) => {
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> };
  // The others are the project and its workspaces.
  const installed = Object.entries(packages).filter(([path]) => path.includes('node_modules/'));
  const fetched = installed.filter(([, { link, inBundle }]) => !link && !inBundle);
  const without = fetched.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ''));
  expect(fetched.length).toBeGreaterThan(100);
  expect(without.map(([path]) => path)).toEqual([]);
});
