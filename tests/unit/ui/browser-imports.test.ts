import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

/** Packages for servers and runners, which would delay a browser's first paint. */
const NOT_FOR_BROWSERS = /^(zod|@libsql\/|@ag-ui\/|node:)/;
const root = path.resolve(import.meta.dirname, '../../..');

it('client code imports no server packages', () => {
  const entries = ['app', 'components'].flatMap(sourcesIn).filter((file) => /^'use client'/.test(textOf(file)));
  expect(entries.length).toBeGreaterThan(50);
  const reached = new Set(entries);
  const wrong: string[] = [];
  for (const file of reached) {
    for (const name of importedBy(file)) {
      if (NOT_FOR_BROWSERS.test(name)) wrong.push(`${path.relative(root, file)} imports ${name}`);
      const next = fileOf(name, file);
      if (next !== null) reached.add(next);
    }
  }
  expect(wrong).toEqual([]);
});

it('every request in page code sends the page headers', () => {
  const sends = /\bfetch\(|new (XMLHttpRequest|EventSource|WebSocket)\b|sendBeacon\(|\?\? fetch\b/;
  const senders = ['app', 'components'].flatMap(sourcesIn).filter((file) => sends.test(textOf(file)));
  const unmarked = senders.filter((file) => !/(?<!function )pageHeaders\(\)/.test(textOf(file)));
  expect(senders).toHaveLength(3);
  // Frames send a token and no cookie.
  expect(unmarked.map((file) => path.relative(root, file))).toEqual(['components/embed/token-keeper.ts']);
});

function sourcesIn(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => path.join(root, folder, name));
}

function textOf(file: string): string {
  return readFileSync(file, 'utf8');
}

/** Imported modules, without types. */
function importedBy(file: string): string[] {
  const statements = textOf(file).matchAll(/^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'([^']+)'/gm);
  return [...statements].map(([, name]) => name as string);
}

function fileOf(name: string, from: string): string | null {
  if (!/^(@\/|\.)/.test(name)) return null;
  const base = name.startsWith('@/') ? path.join(root, name.slice(2)) : path.resolve(path.dirname(from), name);
  return [base, `${base}.ts`, `${base}.tsx`].find((file) => /\.\w+$/.test(file) && existsSync(file)) ?? null;
}
