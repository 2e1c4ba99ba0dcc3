import { testEngines } from './test-engine.ts';

testEngines((name) => !name.startsWith('vllm') && name !== 'llama.cpp');
