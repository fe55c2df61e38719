import { postMessage } from '@/lib/commands/send-message';
import { mount } from '../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postMessage });
