import { postInterrupt } from '@/lib/commands/ask-agent';
import { mount } from '../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postInterrupt });
