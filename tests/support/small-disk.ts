import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A disk of its own for one test, which can be as small as is wanted, grown later, and made read-only. */
export interface SmallDisk {
  folder: string;
  /** @param options of `mount`, as `size=8m` or `ro` */
  remount(options: string): void;
}

/** @throws Error where this user may not mount; ask `canMount` before */
export function smallDisk(options: string): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'interlude-disk-'));
  mount(['-t', 'tmpfs', '-o', `mode=700,${options}`, 'tmpfs', folder]);
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, remount: (changed) => mount(['-o', `remount,${changed}`, folder]) };
}

/** Whether this user may mount: root outside of most containers. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'interlude-disk-'));
  try {
    mount(['-t', 'tmpfs', 'tmpfs', folder]);
    execFileSync('umount', [folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function mount(args: string[]): void {
  execFileSync('mount', args, { stdio: 'ignore' });
}
