import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';

/**
 * A package as it lies in the `node_modules` of one folder, and of no folder above it, where Node itself would go on
 * looking.
 *
 * @returns the file that is loaded of it; null if it is not there, or not all of it
 */
export function installedPackage(folder: string, name: string): string | null {
  const packages = join(folder, 'node_modules');
  const home = join(packages, ...name.split('/'));
  const manifest = readJson<Manifest>(join(home, 'package.json'));
  if (manifest === null || !isRecorded(packages, name, manifest) || !hasItsPlatform(packages, home, manifest)) {
    return null;
  }
  try {
    const file = createRequire(join(packages, 'package.json')).resolve(name);
    return isWithin(realpathSync(home), file) ? file : null;
  } catch {
    return null;
  }
}

interface Manifest {
  version?: string;
  optionalDependencies?: Record<string, string>;
}

/** npm writes down what it has installed once all of it is there: what is not on its list was cut short. */
function isRecorded(packages: string, name: string, { version }: Manifest): boolean {
  const record = readJson<{ packages?: Record<string, { version?: string }> }>(join(packages, '.package-lock.json'));
  if (record?.packages === undefined) return true;
  return record.packages[`node_modules/${name}`]?.version === version;
}

/** Programs come as packages of their own, one for each platform, of which npm takes the one that fits. */
function hasItsPlatform(packages: string, home: string, { optionalDependencies = {} }: Manifest): boolean {
  const here = `-${process.platform}-${process.arch}`;
  const fitting = Object.keys(optionalDependencies).filter((name) => name.includes(here));
  const isThere = (name: string) =>
    [packages, join(home, 'node_modules'), join(realpathSync(home), '..', '..')].some((place) =>
      existsSync(join(place, ...name.split('/'), 'package.json')),
    );
  return fitting.length === 0 || fitting.some(isThere);
}

function readJson<Content>(file: string): Content | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Content;
  } catch {
    return null;
  }
}

/** Whether a path leads to something in a folder, whatever links there are on the way. */
export function isWithin(folder: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(folder + sep);
  } catch {
    return false;
  }
}
