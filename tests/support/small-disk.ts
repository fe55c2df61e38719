import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A file system for one test with adjustable size and read-only mode. */
interface SmallDisk {
  folder: string;
  /** @param options of `mount`, such as `size=8m` or `ro` */
  remount(options: string): void;
}

/** @throws Error if this user can't mount; check `canMount` first */
export function smallDisk(options: string): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'interlude-disk-'));
  mount(['-t', 'tmpfs', '-o', `mode=700,${options}`, 'tmpfs', folder]);
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, remount: (changed) => mount(['-o', `remount,${changed}`, folder]) };
}

/** True if this user can mount: root, and not in most containers. */
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
