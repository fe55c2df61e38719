import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './root.mjs';

/**
 * Opens the database once before serving, which brings its schema up to date: what is wrong with it is then told here,
 * in one line, and not by the first request.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export async function prepareDatabase(env) {
  // For this one import only: Next must load its own modules without tsx in between.
  const { tsImport } = await import('tsx/esm/api');
  const client = pathToFileURL(join(root, 'db', 'client.ts')).href;
  const { databaseOptions, openDatabase } = await tsImport(client, {
    parentURL: import.meta.url,
    tsconfig: join(root, 'tsconfig.json'),
  });
  const database = await openDatabase({ ...databaseOptions(env), migrates: true });
  await database.close();
}
