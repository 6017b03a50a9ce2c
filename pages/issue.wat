;; The loop of policy.js, for engines that are compiled to WebAssembly: the same calls, made through imports on handles.
;; issue.wasm is this file, assembled.
;;
;; Memory holds 20 bytes a dispatch: handles of its pipeline and bind group, and its three sizes.

(module
  (import "gpu" "createCommandEncoder" (func $createCommandEncoder (result i32)))
  ;; encoder, stamps (bit 0: the first pass of all, bit 1: the last one)
  (import "gpu" "beginComputePass" (func $beginComputePass (param i32 i32) (result i32)))
  (import "gpu" "setPipeline" (func $setPipeline (param i32 i32)))
  (import "gpu" "setBindGroup" (func $setBindGroup (param i32 i32)))
  (import "gpu" "dispatchWorkgroups" (func $dispatchWorkgroups (param i32 i32 i32 i32)))
  (import "gpu" "end" (func $end (param i32)))
  ;; encoder, whether it is the last one
  (import "gpu" "finish" (func $finish (param i32 i32)))
  (import "gpu" "submit" (func $submit))
  (memory (export "memory") 1)

  (func $least (param $a i32) (param $b i32) (result i32)
    (select (local.get $a) (local.get $b) (i32.lt_u (local.get $a) (local.get $b))))

  (func (export "issue") (param $n i32) (param $perPass i32) (param $perCommandBuffer i32) (param $perSubmit i32)
    (local $i i32) (local $submitEnd i32) (local $bufferEnd i32) (local $passEnd i32)
    (local $encoder i32) (local $pass i32) (local $at i32)
    (loop $submits
      (local.set $submitEnd (call $least (local.get $n) (i32.add (local.get $i) (local.get $perSubmit))))
      (loop $buffers
        (local.set $bufferEnd
          (call $least (local.get $submitEnd) (i32.add (local.get $i) (local.get $perCommandBuffer))))
        (local.set $encoder (call $createCommandEncoder))
        (loop $passes
          (local.set $passEnd (call $least (local.get $bufferEnd) (i32.add (local.get $i) (local.get $perPass))))
          (local.set $pass
            (call $beginComputePass (local.get $encoder)
              (i32.or (i32.eqz (local.get $i))
                (i32.shl (i32.eq (local.get $passEnd) (local.get $n)) (i32.const 1)))))
          (loop $dispatches
            (local.set $at (i32.mul (local.get $i) (i32.const 20)))
            (call $setPipeline (local.get $pass) (i32.load (local.get $at)))
            (call $setBindGroup (local.get $pass) (i32.load offset=4 (local.get $at)))
            (call $dispatchWorkgroups (local.get $pass) (i32.load offset=8 (local.get $at))
              (i32.load offset=12 (local.get $at)) (i32.load offset=16 (local.get $at)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $dispatches (i32.lt_u (local.get $i) (local.get $passEnd))))
          (call $end (local.get $pass))
          (br_if $passes (i32.lt_u (local.get $i) (local.get $bufferEnd))))
        (call $finish (local.get $encoder) (i32.eq (local.get $i) (local.get $n)))
        (br_if $buffers (i32.lt_u (local.get $i) (local.get $submitEnd))))
      (call $submit)
      (br_if $submits (i32.lt_u (local.get $i) (local.get $n))))))
