import type { Page } from 'playwright-core';
import { PNG } from './attachments';
import { idleAgent } from './idle-agent';
import type { Visit } from './visit';

interface ChosenFile {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

/** `idleAgent` of an agent that takes images and files, with the list of what is attached. */
export async function takingAgent(it: Visit, name: string) {
  const met = await idleAgent(it, name, { kind: 'test', attachments: ['image', 'file'] });
  return { ...met, attached: met.page.getByRole('list', { name: 'Attached' }) };
}

export function choose(page: Page, ...files: ChosenFile[]): Promise<void> {
  return page.locator('input[type=file]').setInputFiles(files);
}

export function textFile(name: string, text: string): ChosenFile {
  return { name, mimeType: 'text/plain', buffer: Buffer.from(text) };
}

export function imageFile(name: string): ChosenFile {
  return { name, mimeType: 'image/png', buffer: Buffer.from(PNG) };
}
