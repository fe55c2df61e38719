import { postRequestAnswer } from '@/lib/commands/answer-request';
import { mount } from '../../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postRequestAnswer });
